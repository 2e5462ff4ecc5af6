/** How numbers and times are said. */

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–'
  if (value < 1) return `${Math.round(value * 10_000) / 10} ms`
  if (value < 90) return `${Math.round(value * 10) / 10} s`
  if (value < 5_400) return `${Math.round(value / 60)} min`
  if (value < 172_800) return `${Math.round(value / 3_600)} h`
  return `${Math.round(value / 86_400)} days`
}

export function count(value: number): string {
  return value.toLocaleString('en')
}

/** A rate a second. */
export function rate(value: number): string {
  return value >= 10 ? count(Math.round(value)) : String(Math.round(value * 100) / 100)
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}

export function time(iso: string | null | undefined): string {
  if (!iso) return '–'
  const at = new Date(iso)
  const isToday = at.toDateString() === new Date().toDateString()
  return isToday ? at.toLocaleTimeString() : at.toLocaleString()
}
