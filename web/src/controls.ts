// A row of radio buttons, so that keyboards and screen readers recognize the choice.

export interface Option<T extends string> {
  value: T;
  label: string;
}

let groups = 0;

/** Adds a group to `parent`. With one option there is nothing to choose and nothing is added. */
export function chooser<T extends string>(
  parent: HTMLElement,
  legend: string,
  options: Option<T>[],
  chosen: T,
  onChange: (value: T) => void,
): void {
  if (options.length < 2) {
    return;
  }
  const name = `chooser-${groups++}`;
  const group = document.createElement("fieldset");
  group.className = "chooser";
  const title = document.createElement("legend");
  title.textContent = legend;
  group.append(title);
  for (const option of options) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    input.type = "radio";
    input.name = name;
    input.value = option.value;
    input.checked = option.value === chosen;
    input.addEventListener("change", () => onChange(option.value));
    const text = document.createElement("span");
    text.textContent = option.label;
    label.append(input, text);
    group.append(label);
  }
  parent.append(group);
}
