export interface Size {
  readonly width: number
  readonly height: number
}

export type Fit = 'contain' | 'cover'

/** Filling the frame may cost so much of a picture, and no more. */
const leastSeen = 0.6

/** How a picture goes into its frame: it fills it, unless too much would be cut off. A screen is always seen whole. */
export function fitOf(picture: Size, frame: Size, isScreen: boolean): Fit {
  const sizes = [picture.width, picture.height, frame.width, frame.height]
  if (isScreen || sizes.some((size) => !(size > 0))) return 'contain'
  const [of, into] = [picture.width / picture.height, frame.width / frame.height]
  return Math.min(of / into, into / of) < leastSeen ? 'contain' : 'cover'
}
