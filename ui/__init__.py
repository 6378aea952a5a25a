"""The app's pages: they read the store and start runs in processes of their own, and hold no logic.

`gate` lets people in, `resources` opens what pages share, `navigation` lists the pages,
`links` lead from one to another, `words` says what every page says; `pages/` has one module a page.
"""
