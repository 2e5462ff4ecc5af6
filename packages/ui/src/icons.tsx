const handset =
  'M2.4 13.3c0-1 .4-1.9 1.1-2.5C5.8 8.7 8.8 7.6 12 7.6s6.2 1.1 8.5 3.2c.7.6 1.1 1.5 1.1 2.5v1.9c0 .9-.9 1.5-1.7 1.2l-3.3-1.3c-.6-.2-.9-.7-.9-1.3l.1-1.9c-2.5-.8-5.1-.8-7.6 0l.1 1.9c0 .6-.3 1.1-.9 1.3l-3.3 1.3c-.8.3-1.7-.3-1.7-1.2z'

const strokes = {
  video:
    'M5.5 6h7a3 3 0 0 1 3 3v6a3 3 0 0 1-3 3h-7a3 3 0 0 1-3-3V9a3 3 0 0 1 3-3M15.5 10.8l5-3.3c.4-.3 1 0 1 .5v8c0 .5-.6.8-1 .5l-5-3.3',
  videoOff:
    'M8 6h4.5a3 3 0 0 1 3 3v4.5M15.5 16.5a3 3 0 0 1-2.6 1.5H5.5a3 3 0 0 1-3-3V9a3 3 0 0 1 1.6-2.6M15.5 10.8l5-3.3c.4-.3 1 0 1 .5v8c0 .5-.6.8-1 .5l-2.5-1.6M3 3l18 18',
  mic: 'M12 2.5a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0v-5a3 3 0 0 1 3-3M5.5 11a6.5 6.5 0 0 0 13 0M12 17.5v4',
  micOff:
    'M9 9v1.5a3 3 0 0 0 4.8 2.4M15 10.5v-5a3 3 0 0 0-5.9-.8M5.5 11a6.5 6.5 0 0 0 10.4 5.2M18.5 11a6.5 6.5 0 0 1-.6 2.7M12 17.5v4M3 3l18 18',
  screen:
    'M5 4.5h14a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2v-8a2 2 0 0 1 2-2M8 20h8M12 13V8M9.5 10 12 7.5l2.5 2.5',
  lock: 'M7 11h10a2 2 0 0 1 2 2v5a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2v-5a2 2 0 0 1 2-2M8 11V8a4 4 0 0 1 8 0v3',
  hold: 'M9 5v14M15 5v14',
  transfer: 'M3.5 8.5H16M12.5 4.5l4 4-4 4M20.5 15.5H8M11.5 11.5l-4 4 4 4',
  chevron: 'm7 14.5 5-5 5 5',
  flip: 'M4.5 11a7.5 7.5 0 0 1 13-4.2L20 9M20 4.5V9h-4.5M19.5 13a7.5 7.5 0 0 1-13 4.2L4 15M4 19.5V15h4.5',
  sound: 'M4 9.5v5h3.5L12 18.5v-13L7.5 9.5zM15.5 9a4.5 4.5 0 0 1 0 6M18 6.5a8 8 0 0 1 0 11',
  fullScreen:
    'M4 9V5.5A1.5 1.5 0 0 1 5.5 4H9M15 4h3.5A1.5 1.5 0 0 1 20 5.5V9M20 15v3.5a1.5 1.5 0 0 1-1.5 1.5H15M9 20H5.5A1.5 1.5 0 0 1 4 18.5V15',
  fill: 'M3 6h18v12H3zM8 9.5 5.5 12 8 14.5M16 9.5l2.5 2.5-2.5 2.5',
  pictureInPicture: 'M21 11V6.5A1.5 1.5 0 0 0 19.5 5h-15A1.5 1.5 0 0 0 3 6.5v11A1.5 1.5 0 0 0 4.5 19H9M13 14h8v5h-8z',
  lost: 'M4 10a12 12 0 0 1 4-2.5M12 6.5A12 12 0 0 1 20 10M7 13.5a7.5 7.5 0 0 1 3-1.7M15 12.5a7.5 7.5 0 0 1 2 1M12 18h.01M3 3l18 18',
}

export type IconName = keyof typeof strokes | 'accept' | 'hangUp'

/** Drawn in the colour of the text; nothing of it is read aloud. */
export function Icon({ name }: { name: IconName }) {
  const isHandset = name === 'accept' || name === 'hangUp'
  return (
    <svg className="rw-icon" viewBox="0 0 24 24" aria-hidden="true" data-solid={isHandset ? '' : undefined}>
      {isHandset ? (
        <path d={handset} transform={name === 'accept' ? 'rotate(-135 12 12)' : undefined} />
      ) : (
        <path d={strokes[name]} />
      )}
    </svg>
  )
}
