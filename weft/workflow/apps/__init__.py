"""Applications of workflows: questions, models, tools, servers, pages."""
