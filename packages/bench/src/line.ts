/** A line through points, with the least squares. */
export function fitLine(points: readonly (readonly [x: number, y: number])[]): { at0: number; slope: number } {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [x, y] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))]
  const spread = points.reduce((sum, [xi]) => sum + (xi - x) ** 2, 0)
  if (!(spread > 0)) throw new Error('A line needs points at two places')
  const slope = points.reduce((sum, [xi, yi]) => sum + (xi - x) * (yi - y), 0) / spread
  return { at0: y - slope * x, slope }
}
