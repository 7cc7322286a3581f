//! A bend: one coordinate sets the scale of others (a funnel) and bends their mean (a banana).
//!
//! With w = (z_k − μ)/σ of the parent k, the children c are x_c = T⁻¹[(z_c + w²B) exp(w b) + C], all other
//! coordinates stay as they are, and log |∂x/∂z| = w Σb, up to the constant log |det T⁻¹|.

use super::bend_fit;
use crate::MatRef;
use crate::Result;
use crate::arrays::{Arrays, FOREIGN, as_count};

/// A map z ↦ x that bends what is straight, and its inverse.
#[derive(Clone, Debug, PartialEq)]
pub struct Bend {
    /// k.
    pub(super) parent: usize,
    /// c.
    pub(super) children: Vec<usize>,
    /// μ.
    pub(super) mean: f64,
    /// σ.
    pub(super) sd: f64,
    /// T by rows: directions of the children that are uncorrelated both where w is low and where it
    /// is high.
    pub(super) directions: Vec<f64>,
    /// T⁻¹ by rows.
    pub(super) inverse: Vec<f64>,
    /// b.
    pub(super) slopes: Vec<f64>,
    /// C.
    pub(super) offsets: Vec<f64>,
    /// B.
    pub(super) curvatures: Vec<f64>,
}

/// What one row needs on its way, so that a batch allocates once.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffer {
    of_children: Vec<f64>,
    mixed: Vec<f64>,
}

impl Bend {
    /// The bend that positions and scores show most clearly, if they show any.
    pub fn fit(positions: MatRef<'_, f64>, scores: MatRef<'_, f64>) -> Option<Self> {
        bend_fit::fit(positions, scores)
    }

    /// The coordinate that the others depend on.
    pub fn parent(&self) -> usize {
        self.parent
    }

    /// The coordinates that depend on it.
    pub fn children(&self) -> &[usize] {
        &self.children
    }

    fn w(&self, row: &[f64]) -> f64 {
        (row[self.parent] - self.mean) / self.sd
    }

    /// Replaces z by x.
    pub(super) fn forward(&self, row: &mut [f64], buffer: &mut Buffer) {
        let w = self.w(row);
        buffer.of_children.clear();
        for (j, &c) in self.children.iter().enumerate() {
            let straight = row[c] + w * w * self.curvatures[j];
            buffer.of_children.push(straight * (w * self.slopes[j]).exp() + self.offsets[j]);
        }
        multiply(&self.inverse, &buffer.of_children, &mut buffer.mixed);
        self.children.iter().zip(&buffer.mixed).for_each(|(&c, &x)| row[c] = x);
    }

    /// Replaces x by z.
    pub(super) fn backward(&self, row: &mut [f64], buffer: &mut Buffer) {
        let w = self.w(row);
        buffer.of_children.clear();
        buffer.of_children.extend(self.children.iter().map(|&c| row[c]));
        multiply(&self.directions, &buffer.of_children, &mut buffer.mixed);
        for (j, &c) in self.children.iter().enumerate() {
            let bent = buffer.mixed[j] - self.offsets[j];
            row[c] = bent * (-w * self.slopes[j]).exp() - w * w * self.curvatures[j];
        }
    }

    /// Replaces a score with respect to x by that with respect to z, at z, of the density of z;
    /// returns its log Jacobian.
    pub(super) fn pull(&self, z: &[f64], score: &mut [f64], buffer: &mut Buffer) -> f64 {
        let w = self.w(z);
        buffer.of_children.clear();
        buffer.of_children.extend(self.children.iter().map(|&c| score[c]));
        multiply_transposed(&self.inverse, &buffer.of_children, &mut buffer.mixed);
        let total: f64 = self.slopes.iter().sum();
        let mut by_w = total;
        for (j, &c) in self.children.iter().enumerate() {
            let (slope, curvature) = (self.slopes[j], self.curvatures[j]);
            let pulled = buffer.mixed[j] * (w * slope).exp();
            by_w += pulled * ((z[c] + w * w * curvature) * slope + 2.0 * w * curvature);
            score[c] = pulled;
        }
        score[self.parent] += by_w / self.sd;
        w * total
    }

    pub(super) fn save(&self, name: &str, into: &mut Arrays) {
        let children = self.children.iter().map(|&c| c as f64);
        into.put(
            format!("{name}.coordinates"),
            [self.parent as f64].into_iter().chain(children).collect::<Vec<_>>(),
        );
        into.put(format!("{name}.parent"), [self.mean, self.sd]);
        into.put(format!("{name}.directions"), &*self.directions);
        into.put(format!("{name}.inverse"), &*self.inverse);
        into.put(format!("{name}.slopes"), &*self.slopes);
        into.put(format!("{name}.offsets"), &*self.offsets);
        into.put(format!("{name}.curvatures"), &*self.curvatures);
    }

    pub(super) fn restore(name: &str, dim: usize, from: &Arrays) -> Result<Self> {
        let coordinates = from.get(&format!("{name}.coordinates"))?;
        let coordinates: Vec<usize> =
            coordinates.iter().map(|&c| as_count(c).map(|c| c as usize)).collect::<Result<_>>()?;
        let Some((&parent, children)) = coordinates.split_first() else { return Err(FOREIGN) };
        if coordinates.iter().any(|&c| c >= dim) {
            return Err(FOREIGN);
        }
        let width = children.len();
        let parent_law = from.get_exactly(&format!("{name}.parent"), 2)?;
        Ok(Self {
            parent,
            children: children.to_vec(),
            mean: parent_law[0],
            sd: parent_law[1],
            directions: from.get_exactly(&format!("{name}.directions"), width * width)?,
            inverse: from.get_exactly(&format!("{name}.inverse"), width * width)?,
            slopes: from.get_exactly(&format!("{name}.slopes"), width)?,
            offsets: from.get_exactly(&format!("{name}.offsets"), width)?,
            curvatures: from.get_exactly(&format!("{name}.curvatures"), width)?,
        })
    }
}

/// M v.
fn multiply(matrix: &[f64], vector: &[f64], out: &mut Vec<f64>) {
    out.clear();
    let rows = matrix.chunks_exact(vector.len());
    out.extend(rows.map(|row| row.iter().zip(vector).map(|(m, x)| m * x).sum::<f64>()));
}

/// Mᵀ v.
fn multiply_transposed(matrix: &[f64], vector: &[f64], out: &mut Vec<f64>) {
    out.clear();
    out.resize(vector.len(), 0.0);
    for (row, x) in matrix.chunks_exact(vector.len()).zip(vector) {
        out.iter_mut().zip(row).for_each(|(o, m)| *o += m * x);
    }
}
