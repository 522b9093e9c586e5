"""The processes between weft and the program, on Linux."""
