import type { Callee } from '@ringwire/client/types'
import { useEffect, useRef, useState } from 'react'
import { Modal } from './modal.tsx'
import type { PartProps } from './part.ts'
import { useCallUi, useWords } from './provider.tsx'

/** Somebody, or a group, to whom the call may be transferred. */
export type TransferChoice = Callee & {
  readonly displayName?: string | undefined
  /** A few words beside the name, as "online". */
  readonly about?: string | undefined
}

type Search = (text: string) => readonly TransferChoice[] | Promise<readonly TransferChoice[]>

/** After the last key, in ms. */
const pauseMs = 150

export interface TransferDialogProps extends PartProps {
  search: Search
  closed(): void
  /** The user has chosen somebody. */
  chosen(): void
}

/** Somebody from the application's list, to whom the call is transferred at once or after asking. */
export function TransferDialog({ className, search, closed, chosen }: TransferDialogProps) {
  const { transfer, consult, call } = useCallUi()
  const words = useWords()
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const found = useFound(search, text)
  const choose = (act: () => void) => () => {
    act()
    dialog.current?.close()
    chosen()
  }
  return (
    <Modal {...{ className, dialog, closed }} title={words.transfer} testId="transfer-dialog">
      <input
        type="search"
        aria-label={words.findPerson}
        placeholder={words.findPerson}
        value={text}
        data-testid="transfer-search"
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
      <ul className="rw-restorable" data-testid="transfer-choices">
        {found?.map((choice) => {
          const { about, ...target } = choice
          const { displayName: name = choice.userId ?? choice.group } = choice
          return (
            <li key={`${choice.role} ${choice.group ? 'group' : ''} ${choice.userId ?? choice.group}`}>
              <span>
                {name}
                {about && <small>{about}</small>}
              </span>
              <button
                type="button"
                className="rw-button"
                aria-label={words.askFirstOf(name)}
                data-testid="ask-first"
                onClick={choose(() => consult({ ...target, callType: call?.callType ?? 'audio' }))}
              >
                {words.askFirst}
              </button>
              <button
                type="button"
                className="rw-button"
                aria-label={words.transferTo(name)}
                data-testid="transfer-now"
                onClick={choose(() => transfer(target))}
              >
                {words.transferNow}
              </button>
            </li>
          )
        })}
      </ul>
      <p role="status">{found?.length === 0 && words.nobodyFound}</p>
    </Modal>
  )
}

/** Undefined until the application has answered. A search that is overtaken by the next one is not shown. */
function useFound(search: Search, text: string): readonly TransferChoice[] | undefined {
  const [found, setFound] = useState<readonly TransferChoice[]>()
  const latest = useRef(search)
  latest.current = search
  useEffect(() => {
    let isOld = false
    const look = async () => {
      let list: readonly TransferChoice[] = []
      try {
        list = await latest.current(text.trim())
      } catch {
        // Nobody is found where the application's own search fails.
      }
      if (!isOld) setFound(list)
    }
    const timer = setTimeout(look, text ? pauseMs : 0)
    return () => {
      isOld = true
      clearTimeout(timer)
    }
  }, [text])
  return found
}
