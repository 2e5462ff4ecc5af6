import type { CallMedia, CallMediaOptions } from '@ringwire/client/media'
import { useRestorable } from '@ringwire/client/react'
import type { TakeableCall } from '@ringwire/client/take'
import type { Transfers, TransferTarget } from '@ringwire/client/transfer'
import type { Call, CallClient, CallOptions, RestorableCall } from '@ringwire/client/types'
import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useInsertionEffect,
  useMemo,
  useSyncExternalStore,
} from 'react'
import { type Line, lineOf } from './line.ts'
import type { LineState, Phase } from './line-state.ts'
import { english, type Words } from './words.ts'

export interface CallProviderProps {
  client: CallClient
  /** For the media of each call. */
  media?: CallMediaOptions | undefined
  /** The treatment of a call that comes during another. Default: 'reject'. */
  busy?: 'reject' | 'wait' | 'hold' | undefined
  /** Of `createTransfers(client)`: a call that is transferred goes on here, and TransferButton transfers one. */
  transfers?: Transfers | undefined
  /** Texts in place of the English ones. */
  words?: Partial<Words> | undefined
  children?: ReactNode
}

export interface CallUi {
  readonly client: CallClient
  readonly call: Call | undefined
  readonly media: CallMedia | undefined
  readonly phase: Phase
  /** When the two sides were first connected on this page, in ms since the epoch. */
  readonly since: number | undefined
  /** The last call, in the phase `over`. */
  readonly ended: LineState['ended']
  /** Calls; during a call it returns the current call. */
  place(options: CallOptions): Call
  accept(options?: { video?: boolean }): void
  decline(reason?: string): void
  /** While a transfer of this side rings, `TransferButton` asks the user first. */
  hangUp(): void
  /** With `busy="wait"`: a second call, which rings during the first one or was put on hold for it. */
  readonly other: LineState['other']
  /** Answers the second call, and puts the first one on hold. */
  holdAndAnswer(options?: { video?: boolean }): void
  /** Answers the second call, and ends the first one. */
  endAndAnswer(options?: { video?: boolean }): void
  declineOther(reason?: string): void
  /** Goes on with the call that is on hold, and puts the other one on hold. */
  swap(): void
  readonly transfers: Transfers | undefined
  /** Hands the other side of the call over. `useTransfer(transfers, call)` says what becomes of it. */
  transfer(target: TransferTarget): void
  /** Puts the call on hold, and calls somebody before a transfer: the second call. */
  consult(options: CallOptions): void
  /** Of two answered calls: the other sides go on with each other. */
  connectBoth(): void
  /** In the phase `over`: calls the same person again, with the same options. */
  callAgain(): void
  dismiss(): void
  readonly restorable: readonly RestorableCall[]
  /** Rejoins one of `restorable`. */
  resume(restorable: RestorableCall): void
  /** Goes on here with a call that is at another device of this person. Not during a call. */
  take(takeable: TakeableCall): void
}

interface ContextOfCall {
  client: CallClient
  line: Line
  words: Words
  transfers: Transfers | undefined
}

const Context = createContext<ContextOfCall | undefined>(undefined)

/** Holds the current call and its media. The call outlives it: a provider mounted again with the same client goes on. */
export function CallProvider({ client, media, busy, transfers, words, children }: CallProviderProps) {
  const line = lineOf(client)
  // Before any effect of a child, which may place a call.
  useInsertionEffect(() => line.configure({ media, busy, transfers }), [line, media, busy, transfers])
  // biome-ignore lint/correctness/useExhaustiveDependencies: what it listens to is configured before
  useEffect(() => line.attach(), [line, transfers])
  const value = useMemo(
    () => ({ client, line, transfers, words: { ...english, ...words } }),
    [client, line, transfers, words],
  )
  return <Context.Provider value={value}>{children}</Context.Provider>
}

export function useContextOfCall() {
  const context = useContext(Context)
  if (!context) throw new Error('This component of @ringwire/ui needs a CallProvider above it.')
  return context
}

export function useWords(): Words {
  return useContextOfCall().words
}

export function useLine(): LineState {
  const { line } = useContextOfCall()
  return useSyncExternalStore(line.subscribe, line.get, line.get)
}

/** The current call and what can be done with it. */
export function useCallUi(): CallUi {
  const { client, line, transfers } = useContextOfCall()
  const state = useLine()
  const restorable = useRestorable(client)
  return useMemo(
    () => ({
      ...line,
      ...state,
      client,
      restorable,
      transfers,
      resume: (call: RestorableCall) => line.resume(call.resume()),
    }),
    [client, state, restorable, transfers, line],
  )
}
