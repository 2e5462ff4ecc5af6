import type { ButtonHTMLAttributes } from 'react'
import { Icon, type IconName } from './icons.tsx'

export interface RoundButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  icon: IconName
  /** Its name, the same in every state: `pressed` tells the state. */
  label: string
  pressed?: boolean | undefined
  testId?: string | undefined
}

export function RoundButton({ icon, label, pressed, testId, className, ...rest }: RoundButtonProps) {
  return (
    <button
      type="button"
      className={`rw-round ${className ?? ''}`}
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      data-testid={testId}
      {...rest}
    >
      <Icon name={icon} />
    </button>
  )
}
