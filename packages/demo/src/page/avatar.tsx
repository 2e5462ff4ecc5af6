import type { CSSProperties } from 'react'

function initials(name: string): string {
  const words = name.split(/\s+/).filter(Boolean)
  const letters = [words[0], words.length > 1 ? words.at(-1) : undefined].map((word) => [...(word ?? '')][0] ?? '')
  return letters.join('').toUpperCase()
}

/** A round picture of a person: initials on a colour that is always the same for the same name. */
export function Avatar({ name, small }: { name: string; small?: boolean }) {
  let hue = 0
  for (const character of name) hue = (hue * 31 + (character.codePointAt(0) ?? 0)) % 360
  return (
    <span className={small ? 'avatar small' : 'avatar'} style={{ '--hue': hue } as CSSProperties} aria-hidden="true">
      {initials(name)}
    </span>
  )
}
