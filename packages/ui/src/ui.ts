/** React components for calls. They need no CSS framework; `ui.css` has what they look like. */
export {}
