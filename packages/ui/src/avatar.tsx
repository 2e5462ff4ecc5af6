/** The first letters of the first and the last word. */
export function initials(name: string): string {
  const words = name.split(/\s+/).filter(Boolean)
  const letters = [words[0], words.length > 1 ? words.at(-1) : undefined].map((word) => [...(word ?? '')][0] ?? '')
  return letters.join('').toUpperCase()
}

/** 0 to 359, always the same for the same name. */
export function hueOf(name: string): number {
  let hue = 0
  for (const character of name) hue = (hue * 31 + (character.codePointAt(0) ?? 0)) % 360
  return hue
}

/** Initials on a colour of their own; two rings spread from it while something is awaited. */
export function Avatar({ name, waits }: { name: string; waits: boolean }) {
  return (
    <div className="rw-portrait" aria-hidden="true" data-waits={waits ? '' : undefined}>
      <i />
      <i />
      <span className="rw-avatar" style={{ '--rw-hue': hueOf(name) } as React.CSSProperties}>
        {initials(name)}
      </span>
    </div>
  )
}
