// What hands have: a mouse and keys, or fingers.

/** Whether the main pointer is a finger: nothing can be pointed at without touching it, and there are no arrow keys. */
export const touch = matchMedia("(hover: none) and (pointer: coarse)").matches;

/** What one does to choose something, in the middle of a sentence. */
export const press = touch ? "touch" : "click";

/** Whether everything stands below each other, as in screens.css. */
export const narrow = matchMedia("(max-width: 900px)").matches;

/** Where inputs and runs are chosen. */
export const choicesAre = narrow ? "above" : "on the left";

export const mapHint = touch
  ? "Touch a cell to see its number."
  : "Point at a cell, or focus the map and use the arrow keys.";
