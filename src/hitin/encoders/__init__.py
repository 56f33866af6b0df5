"""Text encoders: from the words of a document to its vectors."""
