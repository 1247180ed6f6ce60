"""A loss, a penalty and a learning rate that ortlearn finds by their entry points."""
