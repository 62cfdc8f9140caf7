"""The trusted core: everything that reads private counts or draws noise."""
