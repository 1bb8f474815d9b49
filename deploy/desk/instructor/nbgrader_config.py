# What an instructor's own server has besides: nbgrader's list of courses, which
# asks the hub.
c = get_config()  # noqa: F821  (traitlets provides it)

c.Authenticator.plugin_class = "nbgrader.auth.jupyterhub.JupyterHubAuthPlugin"
