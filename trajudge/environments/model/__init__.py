"""The nouns of the environments, and an application in one configuration without HTTP."""
