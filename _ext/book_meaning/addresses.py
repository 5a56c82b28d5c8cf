"""Derive every address that the site states about itself from the repository's.

The repository's address stands once, in `_config.yml`. A page may write `{{ repository }}` or `{{ site }}`,
in running text, in a link or in a code block.
"""

import re

from sphinx.application import Sphinx
from sphinx.config import Config


def site_address(repository: str) -> str:
    """Return where GitHub Pages publishes a repository: `https://owner.github.io/name/`."""
    owner, name = repository.rstrip("/").split("/")[-2:]
    return f"https://{owner}.github.io/{name}/"


def source_address(config: Config, file: str, line: int) -> str:
    """Return where the repository shows a line of a file."""
    options = config.html_theme_options
    return f"{options['repository_url'].rstrip('/')}/blob/{options.get('repository_branch', 'main')}/{file}#L{line}"


def set_addresses(app: Sphinx, config: Config) -> None:
    repository = config.html_theme_options["repository_url"]
    site = site_address(repository)
    config.html_baseurl = site
    config.ogp_site_url = site
    # A missing page can be asked for at any depth, so the 404 page's own links start at the root.
    config.notfound_urls_prefix = "/" + site.split("/", 3)[3]


def fill_in(app: Sphinx, docname: str, source: list[str]) -> None:
    repository = app.config.html_theme_options["repository_url"]
    values = {"repository": repository, "site": site_address(repository)}
    source[0] = re.sub(r"\{\{ (repository|site) \}\}", lambda found: values[found[1]], source[0])


def connect(app: Sphinx) -> None:
    app.connect("config-inited", set_addresses)
    app.connect("source-read", fill_in)
