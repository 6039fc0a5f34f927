"""The page kit: pages as data, which a theme turns into HTML and a walker reads as they are."""
