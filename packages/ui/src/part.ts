export interface PartProps {
  className?: string | undefined
}

/** Class names of a part; `rw` gives it the variables. */
export function classes(own: string, given: string | undefined): string {
  return given ? `rw ${own} ${given}` : `rw ${own}`
}
