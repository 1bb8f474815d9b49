// A figure with precomputed frames: its controls choose the one that is shown.
// Without JavaScript the figure stands as it begins.
for (const figure of document.querySelectorAll("figure.frames")) {
  const frames = JSON.parse(figure.querySelector("script").textContent);
  const picture = figure.querySelector("img");
  const controls = [...figure.querySelectorAll("input")];
  const show = () => {
    let place = 0;
    for (const control of controls) {
      const positions = JSON.parse(control.dataset.positions);
      const words = positions[control.value];
      place = place * positions.length + Number(control.value);
      control.setAttribute("aria-valuetext", words);
      control.nextElementSibling.textContent = words;
    }
    picture.src = frames[place].src;
    picture.alt = frames[place].alt;
  };
  for (const control of controls) control.addEventListener("input", show);
  figure.querySelector(".controls").hidden = false;
}
