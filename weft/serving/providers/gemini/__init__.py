"""The Gemini API: generateContent."""
