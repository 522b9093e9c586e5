"""How recorded runs look to a person: lists, tables, differences."""
