"""What happens between weft's process and the program: runs in processes of its own, on Linux."""
