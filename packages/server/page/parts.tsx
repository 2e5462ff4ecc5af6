/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** The title of a view. It takes the focus, so that a screen reader says where one is. */
export function Head({ title, children }: { title: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    heading.current?.focus({ preventScroll: true })
    document.title = `${title} – Ringwire`
  }, [title])
  return (
    <div class="head">
      <h1 tabIndex={-1} ref={heading}>
        {title}
      </h1>
      {children}
    </div>
  )
}

export function Problem({ text }: { text: string | undefined }) {
  if (text === undefined) return null
  return (
    <p class="note" data-tone="bad" role="alert">
      {text}
    </p>
  )
}
