"""Workers that read one another while they write: Hogwild! and Group Think."""
