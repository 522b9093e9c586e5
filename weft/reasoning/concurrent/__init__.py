"""Workers that read one another's tokens while they write: Hogwild! and Group Think."""
