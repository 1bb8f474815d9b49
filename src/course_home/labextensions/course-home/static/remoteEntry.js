// A prebuilt extension of JupyterLab, small enough to need no bundler: JupyterLab
// calls `init` with the modules it shares, and `get` for the plugin.
{
  // Which cell a link names. JupyterLab follows such links only once it runs.
  const wanted = /^#cell-id=(.+)$/.exec(window.location.hash)?.[1];
  let shared;

  const load = async (name) =>
    (await Object.values(shared[name])[0].get())();

  const goThereOnce = (tracker, panel) => {
    if (!wanted || !panel) {
      return;
    }
    tracker.currentChanged.disconnect(goThereOnce);
    Promise.all([panel.context.ready, panel.revealed]).then(() => {
      const cells = panel.content.widgets;
      const index = cells.findIndex((cell) => cell.model.id === wanted);
      if (index >= 0) {
        panel.content.activeCellIndex = index;
        panel.content.scrollToItem(index, "start");
      }
    });
  };

  const plugin = async () => {
    const { INotebookTracker } = await load("@jupyterlab/notebook");
    const { IMainMenu } = await load("@jupyterlab/mainmenu");
    const { PageConfig, URLExt } = await load("@jupyterlab/coreutils");
    const home = URLExt.join(PageConfig.getBaseUrl(), "course");
    return {
      id: "course-home:plugin",
      autoStart: true,
      requires: [INotebookTracker, IMainMenu],
      activate: (app, tracker, menu) => {
        tracker.currentChanged.connect(goThereOnce);
        goThereOnce(tracker, tracker.currentWidget);
        app.commands.addCommand("course:home", {
          label: "Course Home",
          execute: () => window.location.assign(home),
        });
        menu.viewMenu.addGroup([{ command: "course:home" }], 0);
      },
    };
  };

  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB["course-home"] = {
    init: (scope) => {
      shared = scope;
    },
    get: async () => {
      const made = await plugin();
      return () => ({ __esModule: true, default: made });
    },
  };
}
