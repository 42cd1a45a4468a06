// What a reader can do with the dossier: choose fabrics, layers and scales, enlarge a panel, copy a table. Figures are Vega-Lite.
(async () => {
  "use strict";
  const root = document.documentElement;
  const controls = document.querySelector(".controls");
  const darkScheme = matchMedia("(prefers-color-scheme: dark)");
  const views = new Map();
  const waiting = new Set();
  const guessed = new Set(); // drawn while folded away, at a width that was guessed
  let isDrawing = false;
  const AHEAD = 200; // plots of a page that are drawn before their folds are opened; of more, which take seconds, none
  const ERRORS = 1; // Vega warns of every plot that the reader's choice leaves empty, which is no fault

  // What is large stands compressed in the page. A browser that cannot unpack it shows the still pictures.
  async function unpacked(text) {
    const packed = atob(text);
    const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  const chosen = (name) => [...controls.querySelectorAll(`[name="${name}"]:checked`)].map((input) => input.value);
  const isLinear = () => chosen("scale")[0] === "linear";
  const sizeOf = (figure) => document.querySelector(`select[name="size"][data-figure="${figure}"]`)?.value;

  // A copy of the specification whose logarithmic value axes are linear from zero. Message sizes (base 2) stay as they are.
  function linear(spec) {
    return JSON.parse(JSON.stringify(spec), (key, value) => {
      const isValueAxis = (key === "x" || key === "y") && value?.scale?.type === "log" && !value.scale.base;
      if (!isValueAxis) return value;
      const { values, ...axis } = value.axis ?? {};
      const top = value.scale.domain?.at(-1); // what several panels share stays shared
      const scale = top ? { type: "linear", domain: [0, top] } : { type: "linear", zero: true };
      return { ...value, scale: { ...scale, nice: true }, axis: { ...axis, tickCount: 5 } };
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
    const sized = { ...shown, ...widthOf(element), height: isWide && !shown.layer.some(hasRows) ? 380 : height };
    element.style.minHeight = `${element.offsetHeight}px`; // the page must not jump while the picture is exchanged
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
    if (element.offsetWidth > 0 && sized.width === "container") guessed.delete(id);
    await setSignals(embedded.view, figure).runAsync();
    element.style.minHeight = "";
    element.dataset.rendered = "";
    element.tabIndex = 0;
    for (const picture of element.querySelectorAll("svg")) picture.setAttribute("aria-hidden", "true");
  }

  // What is folded away has no width yet. It is drawn all the same, as wide as its column would be, so that it is there once opened.
  function widthOf(element) {
    if (element.offsetWidth > 0) return { width: "container" };
    const isSingle = element.closest(".panels").classList.contains("single");
    const open = [...document.querySelectorAll(".panels:not(.single) .plot")].find((plot) => plot.offsetWidth > 0);
    const width = isSingle ? document.querySelector("main").clientWidth : (open?.offsetWidth ?? 280);
    guessed.add(element.id);
    return { width, autosize: { type: "fit-x", contains: "padding" } };
  }

  const isFoldedAway = (element) => element.closest("details.fold:not([open])") !== null;
  const isDue = (id) => Object.keys(specs).length <= AHEAD || !isFoldedAway(document.getElementById(id));

  // Rows of text have their own height; only plots with two value axes grow when enlarged.
  function hasRows(layer) {
    return layer.encoding?.y?.type === "nominal";
  }

  // One plot after the other; what is asked for meanwhile joins the queue. A hidden plot is forgotten, and drawn when it is shown.
  async function drawAll(ids) {
    for (const id of ids) waiting.add(id);
    if (isDrawing) return;
    isDrawing = true;
    for (const id of inOrder(waiting)) {
      waiting.delete(id);
      const element = document.getElementById(id);
      if (element.closest("[hidden]")) forget(id);
      else await draw(id);
    }
    isDrawing = false;
    measure();
  }

  // What can be seen first, then what is folded away; what is asked for meanwhile joins.
  function* inOrder(ids) {
    while (ids.size > 0) yield [...ids].find((id) => !isFoldedAway(document.getElementById(id))) ?? [...ids][0];
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
    drawAll(Object.keys(specs).filter((id) => !views.has(id) && isDue(id)));
  }

  controls.addEventListener("change", (event) => {
    const isSwitched = (id) => switchable.includes(specs[id].figure) && (views.has(id) || isDue(id));
    if (event.target.name === "scale") drawAll(Object.keys(specs).filter(isSwitched));
    else applyChoice();
  });
  controls.addEventListener("submit", (event) => event.preventDefault());
  darkScheme.addEventListener("change", () => drawAll(Object.keys(specs).filter((id) => views.has(id) || isDue(id))));

  // A fold that opens shows its plots at their true width; one link to something inside it, or printing, opens it.
  document.addEventListener("toggle", (event) => {
    if (!event.target.open) return;
    const plots = [...event.target.querySelectorAll(".plot")].map((plot) => plot.id);
    drawAll(plots.filter((id) => guessed.has(id) || !views.has(id)));
  }, true);

  function openFolds(target) {
    for (let fold = target; fold; fold = fold.parentElement?.closest("details")) if (fold.matches("details")) fold.open = true;
    const own = target?.querySelector(":scope > details.fold");
    if (own) own.open = true;
  }

  function openAddressed() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    openFolds(target);
    target.scrollIntoView();
  }

  addEventListener("hashchange", openAddressed);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link) openFolds(document.getElementById(link.getAttribute("href").slice(1)));
  });

  // Points tell their numbers to the keyboard as well: arrows go from one to the next, Escape closes.
  let told = null;
  const pointsOf = (plot) => [...plot.querySelectorAll("svg path, svg line, svg rect")].filter((node) => node.__data__?.tooltip);

  function hideTooltip() {
    document.getElementById("vg-tooltip-element")?.classList.remove("visible");
    told?.classList.remove("at");
    told = null;
  }

  function tell(plot, node) {
    hideTooltip();
    const item = node.__data__;
    const { left, top, width, height } = node.getBoundingClientRect();
    const view = views.get(plot.id);
    const at = { clientX: left + width / 2, clientY: top + height / 2 };
    view.tooltip().call(view, view, at, item, item.tooltip);
    node.classList.add("at");
    told = node;
    const words = Object.entries(item.tooltip).map(([name, value]) => `${name}: ${value}`);
    document.getElementById("point-words").textContent = words.join(", ");
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hideTooltip();
    const plot = event.target.closest?.(".plot");
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    if (!plot || !views.has(plot.id) || !(event.key in steps)) return;
    const points = pointsOf(plot);
    if (points.length === 0) return;
    event.preventDefault();
    const next = points.includes(told) ? points.indexOf(told) + steps[event.key] : 0;
    tell(plot, points[Math.min(points.length - 1, Math.max(0, next))]);
  });
  document.addEventListener("focusout", ({ target }) => target.matches?.(".plot") && hideTooltip());

  document.querySelector(".open-all").addEventListener("click", () => {
    for (const fold of document.querySelectorAll("details.fold")) fold.open = true;
  });

  // The bar of choices stays on top: what takes the focus must not lie under it.
  const bar = document.querySelector(".choose");
  document.addEventListener("focusin", ({ target }) => {
    if (bar.contains(target) || getComputedStyle(bar).position !== "sticky") return;
    const { top, bottom } = bar.getBoundingClientRect();
    const own = target.getBoundingClientRect().top;
    if (top <= 0 && own < bottom) scrollBy({ top: own - bottom - 12, behavior: "instant" });
  });

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
    if (copy) copyText(copy);
    const save = event.target.closest("[data-save]");
    if (save) saveTable(document.getElementById(save.dataset.save));
    const download = event.target.closest("[data-download]");
    if (download) unpacked(download.dataset.packed).then((text) => saveText(text, download.dataset.download));
  });

  // A table as a reader sees it, units and all.
  function saveTable(table) {
    const quoted = (cell) => `"${cell.textContent.trim().replaceAll('"', '""')}"`;
    const text = [...table.rows].map((row) => [...row.cells].map(quoted).join(",")).join("\r\n");
    saveText(text, `${table.id.replace(/^table-/, "")}.csv`);
  }

  function saveText(text, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // Tab-separated, which spreadsheets take as cells. Files opened from disk may have no clipboard interface, hence the older way.
  async function copyText(button) {
    const source = document.getElementById(button.dataset.copy);
    const rows = source.rows && [...source.rows].map((row) => [...row.cells].map((cell) => cell.textContent).join("\t"));
    const text = rows ? rows.join("\n") : source.innerText;
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

  openAddressed();
  const { specs, switchable, config } = JSON.parse(await unpacked(document.getElementById("figure-data").textContent));
  const library = document.createElement("script");
  library.textContent = await unpacked(document.getElementById("vega").textContent);
  document.head.append(library);
  root.dataset.scripted = "";
  applyChoice();
})();
