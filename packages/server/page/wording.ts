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

/** Between two instants; until now where the second one has not come. */
export function duration(from: string | null, to: string | null): string {
  if (from === null) return '–'
  return seconds(((to === null ? Date.now() : Date.parse(to)) - Date.parse(from)) / 1_000)
}

/** Of a call, from the answer to the end; of one that was not answered, for how long it rang. */
export function lasted(call: { started_at: string; accepted_at: string | null; ended_at: string | null }): string {
  const text = duration(call.accepted_at ?? call.started_at, call.ended_at)
  return call.accepted_at === null ? `rang ${text}` : text
}

/** What an object says, in a line; without the version of a call, which nobody looks for. */
export function saidOf(detail: Readonly<Record<string, unknown>>): string {
  const said = Object.entries(detail).flatMap(([key, value]) => {
    if (key === 'version' || value === undefined || value === null) return []
    return [`${key.replaceAll('_', ' ')} ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`]
  })
  return said.join(', ')
}
