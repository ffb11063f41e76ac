//! Which bytes of a state hold information and which are padding.
//!
//! The C library keeps controllers and exchange records as plain bytes in its caller's memory. Before it takes such
//! bytes for a value it must know that they are the ones it wrote; and it must not look at padding, which holds
//! nothing.

/// A state whose every byte is accounted for. Only `laid_out!` writes it: the C library's safety rests on it.
pub trait Layout: Copy + Sealed {
    /// One bit for each byte of the value, the lowest for the first byte: set if the byte holds information.
    const FILLED: u128;
    /// A number that changes when the layout or its meaning does: other offsets, other fields, other variants.
    const PRINT: u32;
}

/// Keeps [`Layout`] to this crate.
pub trait Sealed {}

/// [`Layout::FILLED`] of the field that `_pick` picks.
pub(crate) const fn filled<Whole, Field: Layout>(_pick: fn(&Whole) -> &Field) -> u128 {
    Field::FILLED
}

/// [`Layout::PRINT`] of the field that `_pick` picks.
pub(crate) const fn print<Whole, Field: Layout>(_pick: fn(&Whole) -> &Field) -> u32 {
    Field::PRINT
}

/// A bit for each of so many bytes.
pub(crate) const fn bits(bytes: usize) -> u128 {
    assert!(0 < bytes && bytes <= 128, "a state has 1 to 128 bytes");
    u128::MAX >> 128_usize.saturating_sub(bytes)
}

/// A step of FNV-1a, with a word in place of a byte.
pub(crate) const fn mixed(print: u32, word: u32) -> u32 {
    (print ^ word).wrapping_mul(16_777_619)
}

/// The same for every byte of a name.
pub(crate) const fn named(mut print: u32, name: &str) -> u32 {
    let mut left = name.as_bytes();
    while let [byte, rest @ ..] = left {
        print = mixed(print, *byte as u32);
        left = rest;
    }
    print
}

/// Describes a struct by all its fields (`Type { one, other }`, a tuple struct by their numbers) or an enum without data
/// by all its variants (`Type = One | Other`). One too few does not compile.
macro_rules! laid_out {
    ($type:ident $(<$param:ident>)? { $($field:tt),+ }) => {
        impl$(<$param: $crate::layout::Layout>)? $crate::layout::Sealed for $type$(<$param>)? {}

        impl$(<$param: $crate::layout::Layout>)? $crate::layout::Layout for $type$(<$param>)? {
            const FILLED: u128 = $(
                $crate::layout::filled(|whole: &Self| &whole.$field) << ::core::mem::offset_of!(Self, $field)
            )|+;
            const PRINT: u32 = {
                let _every_field: fn(Self) = |$type { $($field: _),+ }| ();
                let print = size_of::<Self>() as u32;
                $(
                    let print = $crate::layout::named(print, stringify!($field));
                    let print = $crate::layout::mixed(print, ::core::mem::offset_of!(Self, $field) as u32);
                    let print = $crate::layout::mixed(print, $crate::layout::print(|whole: &Self| &whole.$field));
                )+
                print
            };
        }
    };
    ($type:ident = $($variant:ident)|+) => {
        impl $crate::layout::Sealed for $type {}

        impl $crate::layout::Layout for $type {
            const FILLED: u128 = $crate::layout::bits(size_of::<Self>());
            const PRINT: u32 = {
                let _every_variant: fn(Self) = |choice| match choice { $($type::$variant => (),)+ };
                let print = size_of::<Self>() as u32;
                $(let print = $crate::layout::mixed($crate::layout::named(print, stringify!($variant)), $type::$variant as u32);)+
                print
            };
        }
    };
}
pub(crate) use laid_out;

macro_rules! without_padding {
    ($($type:ty),+) => {
        $(
            impl Sealed for $type {}

            impl Layout for $type {
                const FILLED: u128 = bits(size_of::<$type>());
                const PRINT: u32 = size_of::<$type>() as u32;
            }
        )+
    };
}
without_padding!(bool, u8, u16, u32, u64);

impl<T: Layout, const N: usize> Sealed for [T; N] {}

impl<T: Layout, const N: usize> Layout for [T; N] {
    const FILLED: u128 = {
        let (mut filled, mut left) = (0, N);
        while left > 0 {
            filled = filled << size_of::<T>() | T::FILLED;
            left = left.saturating_sub(1);
        }
        filled
    };
    const PRINT: u32 = mixed(mixed(size_of::<Self>() as u32, N as u32), T::PRINT);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Gappy<T> {
        first: u8,
        second: u32,
        third: T,
    }
    laid_out!(Gappy<T> { first, second, third });

    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Pair(u16, bool);
    laid_out!(Pair { 0, 1 });

    #[derive(Clone, Copy)]
    enum Choice {
        One,
        Other,
    }
    laid_out!(Choice = One | Other);

    #[derive(Clone, Copy)]
    enum Reversed {
        Other,
        One,
    }
    laid_out!(Reversed = Other | One);

    #[test]
    fn padding_holds_nothing() {
        assert_eq!(Gappy::<Pair>::FILLED, 0b0111_1111_0001);
        assert_eq!(Gappy::<u32>::FILLED, 0b1111_1111_0001);
        assert_eq!(Pair::FILLED, 0b0111);
        assert_eq!(Choice::FILLED, 1);
        assert_eq!(u64::FILLED, 0xFF);
        assert_eq!(<[Gappy<u32>; 2]>::FILLED, 0b1111_1111_0001_1111_1111_0001);
    }

    #[test]
    fn another_layout_has_another_print() {
        let prints =
            [Gappy::<Pair>::PRINT, Gappy::<u32>::PRINT, Pair::PRINT, Choice::PRINT, Reversed::PRINT, bool::PRINT];
        for (i, one) in prints.iter().enumerate() {
            assert!(prints.iter().skip(i.saturating_add(1)).all(|other| one != other), "{prints:?}");
        }
    }
}
