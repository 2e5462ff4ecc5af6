import { useCallMedia, useHold } from '@ringwire/client/react'
import { type ReactNode, useRef } from 'react'
import { CallControls } from './call-controls.tsx'
import { CallTimer } from './call-timer.tsx'
import { Ended } from './ended.tsx'
import { usePeerState, useStats } from './hooks.ts'
import { rings } from './line-call.ts'
import { OwnNotice } from './own-notice.tsx'
import { classes, type PartProps } from './part.ts'
import { PeerTile } from './peer-tile.tsx'
import { useCallUi, useWords } from './provider.tsx'
import { SecondCall } from './second-call.tsx'
import { SecurityCode } from './security-code.tsx'
import { SelfView } from './self-view.tsx'
import { TransferNotice, useTransferText } from './transfer-notice.tsx'
import { nameOf } from './words.ts'

export interface CallStageProps extends PartProps {
  /** The contents without a call. */
  idle?: ReactNode
  /** Tells whether media goes direct or relayed, its size and its round trip. Default: false. */
  details?: boolean | undefined
  /** A lock opens to the numbers that both people compare; see SecurityCode. Default: false. */
  securityCode?: boolean | undefined
  /** M mutes, V turns the camera off and on (it adds none to an audio call), Escape cancels a call that rings. Default: false. */
  keys?: boolean | undefined
  /** More buttons among the controls, as TransferButton. */
  controls?: ReactNode
  /** When the call went live, where the application knows better than this page; see CallTimer. */
  since?: number | undefined
}

/** A whole call: the peer, oneself and the controls, laid out for what room there is. */
export function CallStage({ className, idle, details, securityCode, keys, controls, since }: CallStageProps) {
  const { call, phase, media, ended } = useCallUi()
  const words = useWords()
  const sent = useCallMedia(media)
  const isCameraOff = sent?.muted.video || sent?.slots.video.name === 'lost'
  const stage = useRef<HTMLElement>(null)
  const onStage = phase === 'incoming' ? undefined : call
  return (
    <section
      ref={stage}
      tabIndex={-1}
      className={classes('rw-stage', className)}
      aria-label={words.stage}
      data-phase={phase === 'incoming' ? 'idle' : phase}
      data-type={onStage?.callType}
      data-call={onStage?.callUuid}
      data-muted={sent?.muted.audio ? '' : undefined}
      data-camera-off={isCameraOff ? '' : undefined}
      data-testid="stage"
    >
      <Announcement />
      {onStage && (
        <>
          <PeerTile />
          <div className="rw-top">
            <div className="rw-head">
              <p className="rw-who">
                <strong title={nameOf(onStage)} data-testid="call-name">
                  {nameOf(onStage)}
                </strong>
                <span data-testid="call-state">
                  <StateText since={since} />
                </span>
              </p>
              {securityCode && <SecurityCode />}
            </div>
            {details && <Details />}
          </div>
          <SelfView />
          <div className="rw-bottom">
            <TransferNotice />
            <SecondCall />
            <OwnNotice />
            <CallControls keys={keys}>{controls}</CallControls>
          </div>
        </>
      )}
      {ended && <Ended ended={ended} since={since} closed={() => stage.current?.focus({ preventScroll: true })} />}
      {!onStage && !ended && idle && <div className="rw-idle">{idle}</div>}
    </section>
  )
}

/** What the call does now; undefined while it is simply live. */
function useStateWords(): string | undefined {
  const { call, media, phase } = useCallUi()
  const words = useWords()
  const name = useCallMedia(media)?.name
  if (phase === 'calling') {
    const state = call?.state
    const alerts = state?.name === 'ringing' && state.direction === 'outgoing' && state.alerting
    return alerts ? words.ringing : words.calling
  }
  if (name === 'interrupted') return words.reconnecting
  return phase === 'connecting' ? words.connecting : undefined
}

function StateText({ since }: { since: number | undefined }) {
  return useStateWords() ?? <CallTimer since={since} />
}

/** The one place that speaks to a screen reader: what changed last, once, and never the time. */
function Announcement() {
  const { call, media, phase, ended, other } = useCallUi()
  const words = useWords()
  const now = useStateWords()
  const { away, media: sent } = usePeerState(call)
  const state = useCallMedia(media)
  const { held, byPeer } = useHold(call)
  const transferText = useTransferText()
  const isUnheard = phase === 'live' && state?.name === 'silent' && sent?.audio !== false && !held
  let text = ''
  if (ended) text = words.over(ended)
  else if (call && phase !== 'incoming' && other && rings(other.call)) text = words.waiting(nameOf(other.call))
  else if (transferText) text = transferText
  else if (call && away) text = words.away(nameOf(call))
  else if (call && phase === 'live' && held) text = words.onHold
  else if (call && phase === 'live' && byPeer) text = words.heldBy(nameOf(call))
  else if (state?.playback === 'blocked') text = words.tapToHear
  else if (call && isUnheard) text = words.notHeard(nameOf(call))
  else if (state?.quality === 'poor') text = words.poor
  else if (call && phase !== 'incoming') text = now ?? words.live
  return (
    <p className="rw-read" role="status" data-testid="announcement">
      {text}
    </p>
  )
}

function Details() {
  const { media } = useCallUi()
  const words = useWords()
  const stats = useStats(media)
  if (!stats?.path) return null
  const { path, picture, roundTripMs, inbound } = stats
  const parts = [path === 'relay' ? words.relayed : words.direct]
  if (picture && inbound.video.packets > 0) parts.push(`${picture.width}×${picture.height}`)
  if (roundTripMs !== undefined) parts.push(`${Math.round(roundTripMs)} ms`)
  return (
    <span className="rw-chip rw-details" data-path={path} data-testid="call-path">
      {parts.join(' · ')}
    </span>
  )
}
