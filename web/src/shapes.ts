// Shapes of points and dashes of curves, which distinguish series without their colours.

/** The corners of each shape in a square from −1 to 1. */
export const SHAPES = {
  circle: [],
  square: [[-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]],
  triangle: [[0, -1.1], [1.05, 0.85], [-1.05, 0.85]],
  diamond: [[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]],
} satisfies Record<string, [number, number][]>;

export type Shape = keyof typeof SHAPES;

interface Outline {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  arc(x: number, y: number, radius: number, from: number, to: number): void;
  closePath(): void;
}

/** Adds a shape around a place to a path. */
export function outline(path: Outline, shape: Shape, x: number, y: number, radius: number): void {
  const corners = SHAPES[shape];
  if (corners.length === 0) {
    path.moveTo(x + radius, y);
    path.arc(x, y, radius, 0, 2 * Math.PI);
    return;
  }
  corners.forEach(([across, down], corner) => {
    path[corner === 0 ? "moveTo" : "lineTo"](x + across * radius, y + down * radius);
  });
  path.closePath();
}

/** Dashes of the curves of operations and resources, by the place of their colour. */
export function placeDash(place: number): number[] {
  return [[], [9, 3], [2, 3], [9, 3, 2, 3]][place % 4] ?? [];
}
