// What a picture of a measurement shows.

/** One figure of several systems. */
export interface Bars {
  readonly kind: 'bars'
  /** The name of its file. */
  readonly name: string
  readonly title: string
  /** What the numbers count, with their unit. */
  readonly unit: string
  readonly bars: readonly { label: string; value: number }[]
}

/** How a figure of several systems grows with another one. Both are above 0; the axis of y is logarithmic. */
export interface Lines {
  readonly kind: 'lines'
  readonly name: string
  readonly title: string
  readonly x: string
  readonly y: string
  readonly lines: readonly { label: string; points: readonly (readonly [x: number, y: number])[] }[]
}

export type Chart = Bars | Lines
