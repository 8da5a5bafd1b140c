// Light and dark theme: follows the system until the reader chooses. The colours are custom properties in report.css;
// canvases cannot read them, so charts get them here.

export type Choice = "auto" | "light" | "dark";

const NEXT: Record<Choice, Choice> = { auto: "light", light: "dark", dark: "auto" };
const LABELS: Record<Choice, string> = {
  auto: "Theme: system",
  light: "Theme: light",
  dark: "Theme: dark",
};
const STORAGE_KEY = "mongodyno-theme";

const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);

/** The colour of a custom property such as `--line` in the theme in use, as a canvas takes it. */
export function color(name: string): string {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

export type Rgb = [number, number, number];

/** The same as its red, green and blue, from 0 to 255. */
export function rgb(name: string): Rgb {
  const [r, g, b] = (color(name).match(/[\d.]+/g) ?? []).map(Number);
  return [r ?? 0, g ?? 0, b ?? 0];
}

/** The colour at a share of the way from one to another. */
export function mix(a: Rgb, b: Rgb, share: number): Rgb {
  return [0, 1, 2].map((i) => Math.round((a[i] ?? 0) + ((b[i] ?? 0) - (a[i] ?? 0)) * share)) as Rgb;
}

/** Colour of the operation at a place in the list; eight differ, further ones repeat. */
export function operationColor(index: number): string {
  return color(`--operation-${index % 8}`);
}

function stored(): Choice {
  // A page opened from a file may have no storage; the choice then lasts until the page is closed.
  try {
    const value = localStorage.getItem(STORAGE_KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

function store(choice: Choice): void {
  try {
    localStorage.setItem(STORAGE_KEY, choice);
  } catch {
    // See stored().
  }
}

/** Sets up the button and calls `redraw` whenever colours have changed. */
export function setUpTheme(redraw: () => void): void {
  let choice = stored();
  const button = document.getElementById("theme") as HTMLButtonElement | null;
  const show = () => {
    document.documentElement.dataset["theme"] = choice;
    if (button) {
      button.textContent = LABELS[choice];
      button.hidden = false;
    }
  };
  show();
  button?.addEventListener("click", () => {
    choice = NEXT[choice];
    store(choice);
    show();
    redraw();
  });
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", redraw);
  }
}
