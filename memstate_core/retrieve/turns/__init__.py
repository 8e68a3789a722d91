"""Turns of chats: what their form, their words and their neighbours say about them."""
