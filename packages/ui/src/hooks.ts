import type { CallMedia, MediaStats } from '@ringwire/client/media'
import { usePeer } from '@ringwire/client/react'
import type { Call, PeerState } from '@ringwire/client/types'
import { type RefObject, useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { type Fit, fitOf } from './fit.ts'
import { createPictureWatch } from './picture-watch.ts'

const unknown: PeerState = { away: null, media: null, held: false }

/** The time of now, in ms since the epoch, anew each second while it is `on`. */
export function useClock(on: boolean): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!on) return
    setNow(Date.now())
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [on])
  return now
}

/** The video shows the stream. */
export function useStream(video: RefObject<HTMLVideoElement | null>, stream: MediaStream | undefined): void {
  useEffect(() => {
    const element = video.current
    if (!element || !stream) return
    element.srcObject = stream
    const play = () => void element.play().catch(() => {})
    element.addEventListener('loadedmetadata', play)
    return () => {
      element.removeEventListener('loadedmetadata', play)
      element.srcObject = null
    }
  }, [video, stream])
}

/** How the picture of the video goes into its frame, as both change. */
export function useFit(video: RefObject<HTMLVideoElement | null>, isScreen: boolean): Fit {
  const [fit, setFit] = useState<Fit>('contain')
  useEffect(() => {
    const element = video.current
    if (!element) return
    const measure = () => {
      const { videoWidth: width, videoHeight: height, clientWidth, clientHeight } = element
      setFit(fitOf({ width, height }, { width: clientWidth, height: clientHeight }, isScreen))
    }
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    element.addEventListener('resize', measure)
    return () => {
      observer.disconnect()
      element.removeEventListener('resize', measure)
    }
  }, [video, isScreen])
  return fit
}

/** Whether the peer is away, and what it says that it sends. */
export function usePeerState(call: Call | undefined): PeerState {
  return usePeer(call) ?? unknown
}

/** The statistics of the last interval; undefined before the first. */
export function useStats(media: CallMedia | undefined): MediaStats | undefined {
  const [last, setLast] = useState<{ media: CallMedia; stats: MediaStats }>()
  useEffect(() => media?.on('stats', (stats) => setLast({ media, stats })), [media])
  return last?.media === media ? last?.stats : undefined
}

/** Whether the peer's picture comes. */
export function usePictureComes(media: CallMedia | undefined): boolean {
  const [comes, setComes] = useState(true)
  useEffect(() => {
    setComes(true)
    const watch = createPictureWatch()
    return media?.on('stats', (stats) => setComes(watch(stats)))
  }, [media])
  return comes
}

/** Facts that only a browser knows; false on a server and while its page is taken over. */
export function useBrowserHas(check: () => boolean): boolean {
  return useSyncExternalStore(
    () => () => {},
    check,
    () => false,
  )
}

/** Whether an element is in the state that a pair of its events begins and ends. */
export function useDocumentState(event: string, read: () => boolean): boolean {
  const subscribe = useCallback(
    (changed: () => void) => {
      // Captured: the events of picture in picture are the video's.
      document.addEventListener(event, changed, true)
      return () => document.removeEventListener(event, changed, true)
    },
    [event],
  )
  return useSyncExternalStore(subscribe, read, () => false)
}

/** A press of the pointer anywhere but in the element. */
export function useClickElsewhere(element: RefObject<Element | null>, clicked: () => void): void {
  const now = useRef(clicked)
  now.current = clicked
  useEffect(() => {
    const pressed = ({ target }: PointerEvent) => {
      if (!element.current?.contains(target as Node)) now.current()
    }
    document.addEventListener('pointerdown', pressed)
    return () => document.removeEventListener('pointerdown', pressed)
  }, [element])
}

/** How many cameras a device has that is held in the hand; 0 on others, and until it is known. */
export function useHandheldCameras(media: CallMedia | undefined): number {
  const isHandheld = useBrowserHas(() => matchMedia('(pointer: coarse)').matches)
  const [count, setCount] = useState(0)
  useEffect(() => {
    if (!media || !isHandheld) return
    let isGone = false
    const look = (list: readonly MediaDeviceInfo[]) => {
      if (!isGone) setCount(list.filter(({ kind }) => kind === 'videoinput').length)
    }
    void media.devices().then(look, () => {})
    const unsubscribe = media.on('devices', look)
    return () => {
      isGone = true
      unsubscribe()
    }
  }, [media, isHandheld])
  return isHandheld ? count : 0
}
