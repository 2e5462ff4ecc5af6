const handset =
  'M2.4 13.3c0-1 .4-1.9 1.1-2.5C5.8 8.7 8.8 7.6 12 7.6s6.2 1.1 8.5 3.2c.7.6 1.1 1.5 1.1 2.5v1.9c0 .9-.9 1.5-1.7 1.2l-3.3-1.3c-.6-.2-.9-.7-.9-1.3l.1-1.9c-2.5-.8-5.1-.8-7.6 0l.1 1.9c0 .6-.3 1.1-.9 1.3l-3.3 1.3c-.8.3-1.7-.3-1.7-1.2z'

const lines = {
  video:
    'M5.5 6h7a3 3 0 0 1 3 3v6a3 3 0 0 1-3 3h-7a3 3 0 0 1-3-3V9a3 3 0 0 1 3-3zM15.5 10.8l5-3.3c.4-.3 1 0 1 .5v8c0 .5-.6.8-1 .5l-5-3.3',
  incoming: 'M18 6 7 17M7 9v8h8',
  outgoing: 'M6 18 17 7M9 7h8v8',
  missed: 'm4 8 8 8 8-8M4 14V8h6',
  up: 'M12 20V5M6 11l6-6 6 6',
  down: 'M12 4v15M6 13l6 6 6-6',
  bell: 'M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 1.5h-15zM10 20.5a2.2 2.2 0 0 0 4 0',
  log: 'M4 6h.01M4 12h.01M4 18h.01M8.5 6H20M8.5 12H20M8.5 18H15',
  signOut: 'M14 4H7a2.5 2.5 0 0 0-2.5 2.5v11A2.5 2.5 0 0 0 7 20h7M10 12h10.5M16.5 8l4 4-4 4',
} as const

export type IconName = keyof typeof lines | 'phone'

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
      {name === 'phone' ? (
        <path className="solid" d={handset} transform="rotate(-135 12 12)" />
      ) : (
        <path d={lines[name]} />
      )}
    </svg>
  )
}
