import { classes, type PartProps } from './part.ts'
import { useCallUi, useWords } from './provider.tsx'
import { nameOf } from './words.ts'

/** Calls that go on without this page: each can be rejoined or ended. Nothing is switched on before. */
export function RestorableCalls({ className }: PartProps) {
  const { restorable, call, resume } = useCallUi()
  const words = useWords()
  if (restorable.length === 0) return null
  return (
    <ul className={classes('rw-restorable', className)} data-testid="restorable">
      {restorable.map((each) => (
        <li key={each.callUuid} data-call={each.callUuid}>
          <span>{words.restorable(nameOf(each))}</span>
          <button
            type="button"
            className="rw-button"
            data-testid="rejoin"
            disabled={call !== undefined}
            onClick={() => resume(each)}
          >
            {words.rejoin}
          </button>
          <button type="button" className="rw-button" data-testid="end-restorable" onClick={() => void each.end()}>
            {words.end}
          </button>
        </li>
      ))}
    </ul>
  )
}
