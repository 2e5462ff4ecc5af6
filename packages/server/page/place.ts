import { useLayoutEffect, useState } from 'preact/hooks'

/** The place in the page: `#/calls/shop?q=ann` is ['calls', 'shop'] and { q: 'ann' }. */
export interface Place {
  readonly parts: readonly string[]
  readonly query: URLSearchParams
}

export function placeOf(hash: string): Place {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?')
  const parts = path.split('/').filter(Boolean).map(decoded)
  return { parts: parts.length === 0 ? ['now'] : parts, query: new URLSearchParams(search) }
}

export function linkTo(parts: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
  return `#/${parts.map(encodeURIComponent).join('/')}${search}`
}

export function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash))
  // Before it is painted, as the keys that lead to another place.
  useLayoutEffect(() => {
    const moved = () => setPlace(placeOf(location.hash))
    addEventListener('hashchange', moved)
    return () => removeEventListener('hashchange', moved)
  }, [])
  return place
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
