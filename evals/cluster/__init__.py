"""What a cluster costs, and what it loses: tools of weft on Ray, beside plain tasks of Ray."""
