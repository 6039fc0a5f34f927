"""What a judge's prompt is made of: views that fit, pictures, trees."""
