// A figure with precomputed frames: its controls choose the one that is shown.
// Without JavaScript the figure stands as it begins.
const placeOf = (control) => {
  if (control.type === "checkbox") return Number(control.checked);
  return control.selectedIndex ?? Number(control.value);
};
for (const figure of document.querySelectorAll("figure.frames")) {
  const frames = JSON.parse(figure.querySelector("script").textContent);
  const picture = figure.querySelector("img");
  const controls = [...figure.querySelectorAll("input, select")];
  const show = () => {
    let place = 0;
    for (const control of controls) {
      const at = placeOf(control);
      place = place * Number(control.dataset.positions) + at;
      if (!control.dataset.words) continue;
      const words = JSON.parse(control.dataset.words)[at];
      control.setAttribute("aria-valuetext", words);
      control.nextElementSibling.textContent = words;
    }
    picture.src = frames[place].src;
    picture.alt = frames[place].alt;
  };
  for (const control of controls) control.addEventListener("input", show);
  figure.querySelector(".controls").hidden = false;
}

// A table that is wider than its place is scrolled, by keyboard too.
for (const place of document.querySelectorAll(".pst-scrollable-table-container")) {
  if (place.scrollWidth <= place.clientWidth) continue;
  place.tabIndex = 0;
  place.role = "region";
  place.ariaLabel = "Table";
}
