"""A publishing desk: articles, reviews, images, newsletters, comments (content creation)."""
