import { useClock } from './hooks.ts'
import { classes, type PartProps } from './part.ts'
import { useCallUi } from './provider.tsx'
import { durationText } from './words.ts'

export interface CallTimerProps extends PartProps {
  /** In ms since the epoch. Default: when media first came on this page. The earlier of both counts. */
  since?: number | undefined
}

/** How long the call has been live; nothing before that. */
export function CallTimer({ className, since: given }: CallTimerProps) {
  const { since } = useCallUi()
  const now = useClock(since !== undefined)
  if (since === undefined) return null
  const from = Math.min(since, given ?? since)
  return (
    <span className={classes('rw-timer', className)} role="timer">
      {durationText((now - from) / 1000)}
    </span>
  )
}
