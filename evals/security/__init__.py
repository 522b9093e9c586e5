"""How servers of weft answer others while one request attacks them. All traffic is on 127.0.0.1."""
