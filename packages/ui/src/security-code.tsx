import { useSecurityCode } from '@ringwire/client/react'
import { Icon } from './icons.tsx'
import { classes, type PartProps } from './part.ts'
import { useCallUi, useWords } from './provider.tsx'

/** A lock that opens to the code which both people compare [SAS1]; nothing until the call is connected. */
export function SecurityCode({ className }: PartProps) {
  const { media } = useCallUi()
  const words = useWords()
  const code = useSecurityCode(media)
  if (!code) return null
  return (
    <details className={classes('rw-code', className)} data-testid="security">
      <summary className="rw-chip" aria-label={words.securityCode} title={words.securityCode} data-testid="show-code">
        <Icon name="lock" />
      </summary>
      <div className="rw-panel">
        <p>{words.compareCode}</p>
        <p className="rw-digits" data-testid="security-code">
          {code}
        </p>
        <p>{words.otherCode}</p>
      </div>
    </details>
  )
}
