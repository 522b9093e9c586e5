"""Several scripted replicas behind a scripted router: which of them has a prompt's prefix?"""
