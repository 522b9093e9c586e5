"""What is made of workflows: questions, models, tools, servers, pages."""
