// What a reader can do with the dossier: choose fabrics, layers and scales, enlarge a panel, copy a table. Figures are Vega-Lite.
(() => {
  "use strict";
  const { specs, switchable, config } = JSON.parse(document.getElementById("figure-data").textContent);
  const root = document.documentElement;
  const controls = document.querySelector(".controls");
  const darkScheme = matchMedia("(prefers-color-scheme: dark)");
  const views = new Map();
  const waiting = new Set();
  let isDrawing = false;
  const ERRORS = 1; // Vega warns of every plot that the reader's choice leaves empty, which is no fault

  const chosen = (name) => [...controls.querySelectorAll(`[name="${name}"]:checked`)].map((input) => input.value);
  const isLinear = () => chosen("scale")[0] === "linear";
  const sizeOf = (figure) => document.querySelector(`select[name="size"][data-figure="${figure}"]`)?.value;

  // A copy of the specification whose logarithmic value axes are linear from zero. Message sizes (base 2) stay as they are.
  function linear(spec) {
    return JSON.parse(JSON.stringify(spec), (key, value) => {
      const isValueAxis = (key === "x" || key === "y") && value?.scale?.type === "log" && !value.scale.base;
      if (!isValueAxis) return value;
      const { values, ...axis } = value.axis ?? {};
      return { ...value, scale: { type: "linear", zero: true, nice: true }, axis: { ...axis, tickCount: 5 } };
    });
  }

  function setSignals(view, figure) {
    const wanted = { fabrics: chosen("fabrics"), size: Number(sizeOf(figure)) };
    const receives = chosen("receives");
    if (controls.querySelector('[name="receives"]')) wanted.receives = receives;
    const known = view.getState().signals;
    for (const [name, value] of Object.entries(wanted)) if (name in known) view.signal(name, value);
    return view;
  }

  async function draw(id) {
    const { spec, height, figure } = specs[id];
    const shown = isLinear() && switchable.includes(figure) ? linear(spec) : spec;
    const element = document.getElementById(id);
    const isWide = element.closest(".panel").classList.contains("wide");
    const sized = { ...shown, width: "container", height: isWide && !shown.layer.some(hasRows) ? 380 : height };
    const theme = darkScheme.matches ? "dark" : "light";
    const embedded = await vegaEmbed(element, sized, {
      renderer: "svg",
      actions: false,
      logLevel: ERRORS,
      config: config[theme],
      tooltip: { theme: theme === "dark" ? "dark" : "custom" },
    });
    forget(id);
    views.set(id, embedded.view);
    await setSignals(embedded.view, figure).runAsync();
    element.style.minHeight = "";
    element.dataset.rendered = "";
  }

  // Rows of text have their own height; only plots with two value axes grow when enlarged.
  function hasRows(layer) {
    return layer.encoding?.y?.type === "nominal";
  }

  // One plot after the other; what is asked for meanwhile joins the queue. A hidden plot is forgotten, and drawn when it is shown.
  async function drawAll(ids) {
    for (const id of ids) waiting.add(id);
    if (isDrawing) return;
    isDrawing = true;
    for (const id of waiting) {
      waiting.delete(id);
      if (document.getElementById(id).offsetWidth > 0) await draw(id);
      else forget(id);
    }
    isDrawing = false;
    measure();
  }

  function forget(id) {
    views.get(id)?.finalize();
    views.delete(id);
  }

  // For tests, and for whoever wonders: how many plots there are, and by how much the page is too wide.
  function measure() {
    root.dataset.plots = `${document.querySelectorAll(".plot[data-rendered] svg").length}`;
    root.dataset.overflow = `${Math.max(0, root.scrollWidth - root.clientWidth)}`;
  }

  function applyChoice() {
    const fabrics = chosen("fabrics");
    const layers = chosen("layers");
    const receives = chosen("receives");
    for (const figure of document.querySelectorAll(".figure")) {
      const size = sizeOf(figure.dataset.figure);
      const panels = [...figure.querySelectorAll(".panel")];
      for (const panel of panels) {
        const { layer, receive, left, right, sizes } = panel.dataset;
        panel.hidden =
          (layer && layers.length > 0 && !layers.includes(layer)) ||
          (receive && controls.querySelector('[name="receives"]') && !receives.includes(receive)) ||
          (left && !(fabrics.includes(left) && fabrics.includes(right))) ||
          (sizes && size && !sizes.split(" ").includes(size)) ||
          false;
      }
      figure.querySelector(".nothing").hidden = panels.some((panel) => !panel.hidden);
    }
    for (const [id, view] of views) setSignals(view, specs[id].figure).runAsync();
    drawAll(Object.keys(specs).filter((id) => !views.has(id)));
  }

  controls.addEventListener("change", (event) => {
    if (event.target.name === "scale") drawAll(Object.keys(specs).filter((id) => switchable.includes(specs[id].figure)));
    else applyChoice();
  });
  controls.addEventListener("submit", (event) => event.preventDefault());
  darkScheme.addEventListener("change", () => drawAll(Object.keys(specs)));

  document.addEventListener("change", (event) => {
    if (event.target.matches('select[name="size"]')) applyChoice();
  });

  document.addEventListener("click", (event) => {
    const enlarge = event.target.closest(".enlarge");
    if (enlarge) {
      const isWide = enlarge.closest(".panel").classList.toggle("wide");
      enlarge.setAttribute("aria-pressed", `${isWide}`);
      drawAll([enlarge.closest(".panel").querySelector(".plot").id]);
    }
    const copy = event.target.closest("[data-copy]");
    if (copy) copyTable(copy);
  });

  // Tab-separated, which spreadsheets take as cells. Files opened from disk may have no clipboard interface, hence the older way.
  async function copyTable(button) {
    const rows = [...document.getElementById(button.dataset.copy).rows];
    const text = rows.map((row) => [...row.cells].map((cell) => cell.textContent).join("\t")).join("\n");
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1600);
  }

  applyChoice();
})();
