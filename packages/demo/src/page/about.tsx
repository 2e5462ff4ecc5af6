import { Fragment, type ReactNode } from 'react'

/** The line below a name. If it is short of room it goes on below, part by part. */
export function About({ parts }: { parts: readonly ReactNode[] }) {
  return (
    <span className="person-about">
      {parts.map((part, index) => (
        <Fragment key={index}>
          {index > 0 && ' '}
          <span>
            {part}
            {index < parts.length - 1 && ' ·'}
          </span>
        </Fragment>
      ))}
    </span>
  )
}
