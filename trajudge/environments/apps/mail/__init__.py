"""The mail application: a member of others, whose mails tell what is to be done in them."""
